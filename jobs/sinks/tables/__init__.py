"""The sink `table`: Parquet files or Delta, their layout, their log, and files in no batch."""
