"""Names of words in memory that machine code shares with Python."""

STOP_WORD = "tensorswap_stop"  # not zero if the work of kernels is not wanted any more
TEAM_WORDS = "tensorswap_team"  # what threads that share a kernel tell each other
