"""Settings of Postgres's planner and executor that clients and scripts set: known and shown, but without effect here.

None of them changes a query's rows in Postgres, so accepting them silently gives no wrong answer.
"""

from __future__ import annotations

from typing import Final

SWITCHES: Final = (
    "enable_async_append", "enable_bitmapscan", "enable_gathermerge", "enable_hashagg", "enable_hashjoin",
    "enable_incremental_sort", "enable_indexonlyscan", "enable_indexscan", "enable_material", "enable_memoize",
    "enable_mergejoin", "enable_nestloop", "enable_parallel_append", "enable_parallel_hash",
    "enable_partition_pruning", "enable_seqscan", "enable_sort", "enable_tidscan", "geqo", "jit",
    "parallel_leader_participation",
)  # fmt: skip
"""On by default."""

OFF: Final = ("enable_partitionwise_aggregate", "enable_partitionwise_join", "synchronize_seqscans")
"""Switches that are off by default."""

NUMBERS: Final[dict[str, str]] = {
    "cpu_index_tuple_cost": "0.005", "cpu_operator_cost": "0.0025", "cpu_tuple_cost": "0.01",
    "cursor_tuple_fraction": "0.1", "default_statistics_target": "100", "effective_cache_size": "4GB",
    "from_collapse_limit": "8", "geqo_effort": "5", "geqo_threshold": "12", "hash_mem_multiplier": "2",
    "jit_above_cost": "100000", "join_collapse_limit": "8", "maintenance_work_mem": "64MB",
    "max_parallel_workers": "8", "max_parallel_workers_per_gather": "2", "min_parallel_index_scan_size": "512kB",
    "min_parallel_table_scan_size": "8MB", "parallel_setup_cost": "1000", "parallel_tuple_cost": "0.1",
    "max_stack_depth": "2MB", "random_page_cost": "4", "seq_page_cost": "1", "temp_buffers": "8MB",
}  # fmt: skip

WORDS: Final[dict[str, str]] = {
    "constraint_exclusion": "partition", "force_parallel_mode": "off", "plan_cache_mode": "auto",
    "password_encryption": "scram-sha-256", "role": "none",
}  # fmt: skip
