"""What shards cost on two workers, and what a model of that cost says of many."""
