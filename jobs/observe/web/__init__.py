"""The HTTP server of a job, and what keeps its clients from disturbing the job."""
