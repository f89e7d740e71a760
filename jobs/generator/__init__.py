"""`unskew generate`: realistic skewed streams that the shipped jobs read, and their exact totals.

A stream is a function of its settings and seed: record i is the same however fast, in how many
pieces and whereto it is written. Records are made some thousands at a time as numpy and Arrow
columns and leave as bytes; what is counted for the oracle comes from the columns, not the bytes.
A second of processor time makes at least 100 000 records and hands them to Kafka:
benchmarks/results/generate.md.
"""
