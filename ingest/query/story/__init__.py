"""What happened in a run, in sentences that can be checked: findings, ranked by the latency that they account for."""
