"""The parts of the simulator: shares, pairs, queues, reports."""
