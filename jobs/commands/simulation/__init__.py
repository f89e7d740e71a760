"""Commands that route traces without Spark: their options, tables and plots are shared."""
