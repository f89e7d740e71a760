"""A storm of faults over real jobs; every total and dead letter is compared with an oracle.

`python -m tests.storm --help` lists what can be run. One seed decides a case: its job, its records,
and which faults meet it. When exactly a fault meets it is up to the machine. `oracle/` says what a
job must give, `harness/` runs jobs and looks at them, `faults/` holds the kinds of cases.
"""
