"""The settings file that a new local book gets: every default, stated."""

SETTINGS_FILE = "rollbook.toml"

DEFAULTS = """\
# Settings of this book. Each line shows a default; change it and remove the hash.
# A line with two hashes is an example: without it there is no such limit.

[batch]
# turns = 4096               # turns that complete a batch (T)
# lease_seconds = 3600       # an unacked batch comes out again after this
## max_unit_turns = 1000     # a larger unit is discarded as oversize
# truncated_share = 1.0      # most truncated turns in a batch, as a share of its turns

[discard]
# max_age_versions = 4       # age = limit is kept, limit + 1 is discarded
# max_wait_seconds = 86400   # seconds since the sample finished
## soft_age_versions = 2     # over a soft limit a sample is kept and counted
## soft_wait_seconds = 3600
# reason_order = ["age_versions", "wait_seconds"]   # the first that applies is the reason
# policy = "sample"          # group: a stale member takes its whole group with it

# A discard line of its own for a duration class; a limit left out here is that of [discard].
## [duration_class.long]
## most_seconds = 21600      # longest expected run of the class; without it, all longer ones
## max_age_versions = 8
## max_wait_seconds = 259200

[groups]
## size = 8                  # members of a group; without it every sample is a unit
## min_members = 4           # fewest valid members; without it all of them
# settle_seconds = 1800      # a group settles this long after its first member ended
# unusable = "sample"        # group: an unusable member takes its whole group with it
# flat = "discard"           # keep: groups whose rewards are all equal are trained on

[shares]
# mode = "submitted"         # configured: as stated below, by stratum type/class or by type
# configured = {}            # for example { "coding/long" = 0.3, "search" = 0.7 }
# least = {}                 # least share of every batch, by stratum
# least_wait_seconds = 600   # how long a full batch waits for a least share

[default_task_type]
# success_at = 0.5           # a lower reward is a failure
# failure_share = 1.0        # failed turns / turns: aimed at, and never exceeded (f)

# The same for one task type.
## [task_type.coding]
## failure_share = 0.5

[end]
# policy = "hold"            # flush_partial: a short batch goes when the data have ended
# producer_timeout_seconds = 600   # a producer without a heartbeat for this long is dead

[alarms]
# dead_streak = 10           # this many unusable units in a row open an incident
# type_starved_samples = 10  # so many of a type lost, and none assigned …
# type_starved_seconds = 86400   # … in this time: the type is starved
# hook_command = []          # called with the incident as JSON on its input
## hook_url = "https://example.org/incidents"   # the incident is posted there as JSON
# hook_timeout_seconds = 10  # a hook that takes longer has failed

[storage]
# group_rows = 10000         # a group commit is due at this many rows …
# group_seconds = 0.05       # … or this long after its first
# checkpoint_commits = 50    # commits between table checkpoints
# keep_days = 30             # old table versions stay readable for this long
# target_file_mb = 256       # size that compaction aims at
"""
