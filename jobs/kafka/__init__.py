"""Kafka's clients and a local broker."""
