"""What keeps one record from holding a task for ever, or from taking all of its memory."""
