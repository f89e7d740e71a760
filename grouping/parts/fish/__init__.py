"""What `fish` is made of: backlogs, candidates, and the ring that they are on."""
