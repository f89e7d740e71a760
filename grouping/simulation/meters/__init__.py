"""What a simulation takes note of on the way: reports of partitions, figures over time."""
