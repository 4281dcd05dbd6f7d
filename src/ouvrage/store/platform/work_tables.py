"""The tables of what runs: nodes and what withholds them, offers, leases, jobs, attempts, files, claims.

Decides what stands in a table beside its fact, and which columns say more than facts do (how far an attempt is, what a
runner has been heard to say, who holds a claim). Those are how things stand this minute: they are not rebuilt, the runner tells
them again. Lists inside a row are canonical JSON.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text

from ouvrage.store.schema import metadata

nodes = Table(
    "nodes",
    metadata,
    Column("node", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("cpus", Text, nullable=False),
    Column("memory_mib", BigInteger, nullable=False),
    Column("disk_mib", BigInteger, nullable=False),
    Column("devices", Text, nullable=False),
    Column("isolations", Text, nullable=False),
    Column("cgroup", Text, nullable=False),
    Column("boot", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("listed", nullable=False),
    Column("enrolled_us", BigInteger, nullable=False),
)

runners = Table(
    "runners",
    metadata,
    Column("node", Text, primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("seen_us", BigInteger, nullable=False),
    # Since when it has been here without a break, and up to when that was written as a fact.
    Column("present_us", BigInteger, nullable=False),
    Column("told_us", BigInteger, nullable=False),
)
"""What the server has heard of a node's runner; its key is a credential and stands with the others."""

fences = Table(
    "fences",
    metadata,
    Column("node", Text, primary_key=True),
    Column("device", Text, primary_key=True),  # '' for the whole node
    Column("holder", Text, primary_key=True),
    Column("why", Text, nullable=False),
    Column("said_by", Text, nullable=False),
    Column("since_us", BigInteger, nullable=False),
)

offers = Table(
    "offers",
    metadata,
    Column("offer", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("audience", Text, nullable=False),
    Column("terms", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("withdrawn_us", BigInteger),
    Index("offers_name", "name"),
)

leases = Table(
    "leases",
    metadata,
    Column("lease", Text, primary_key=True),
    Column("offer", Text, nullable=False),
    Column("org", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("attempt", Text),
    Column("node", Text, nullable=False),
    Column("placed", Text, nullable=False),
    Column("from_us", BigInteger, nullable=False),
    Column("until_us", BigInteger),
    Column("ended_us", BigInteger),
    Column("end", Text),
    Column("billable_us", BigInteger),
    # Asked for: no new work starts, and when the last attempt is over the lease ends so.
    Column("ending", Text),
    Index("leases_open", "ended_us", "node"),
    Index("leases_org", "org", "lease"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("job", Text, primary_key=True),
    Column("org", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("offer", Text),
    Column("lease", Text),
    Column("spec", Text, nullable=False),
    Column("submitted_us", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("ended_us", BigInteger),
    Column("code", Text),
    Column("reason", Text),
    # The nodes whose hardware failed it, and when it is tried again at the earliest.
    Column("not_on", Text, nullable=False),
    Column("not_before_us", BigInteger, nullable=False),
    Index("jobs_state", "state", "submitted_us"),
    Index("jobs_org", "org", "job"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("attempt", Text, primary_key=True),
    Column("job", Text, nullable=False),
    Column("org", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("lease", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("placed", Text, nullable=False),
    Column("ordered_us", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("began_us", BigInteger),
    Column("ended_us", BigInteger),
    Column("wall_us", BigInteger),
    Column("exit_code", Integer),
    Column("signal", Integer),
    Column("outcome", Text),
    Column("cause", Text),
    Column("reason", Text),
    Column("isolation", Text),
    Column("peaks", Text),
    Column("scrub", Text),
    Column("scrub_detail", Text),
    # How it stands with the runner: when it was first sent and first known there, since when it is
    # missing there, what it was asked to stop for, what it said last, whether it may be forgotten.
    Column("sent_us", BigInteger),
    Column("known_us", BigInteger),
    Column("missing_us", BigInteger),
    Column("stop", Text),
    Column("stop_reason", Text),
    Column("stop_grace_us", BigInteger),
    Column("progress", Text),
    Column("forgotten", nullable=False),
    Index("attempts_node", "node", "forgotten"),
    Index("attempts_job", "job", "number"),
    Index("attempts_lease", "lease"),
    Index("attempts_state", "state"),
)

job_files = Table(
    "job_files",
    metadata,
    Column("job", Text, primary_key=True),
    Column("direction", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("bytes", BigInteger, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("at_us", BigInteger, nullable=False),
)

shares = Table(
    "shares",
    metadata,
    Column("project", Text, primary_key=True),
    Column("used_us", BigInteger, nullable=False),
    Column("at_us", BigInteger, nullable=False),
)
"""What a project's ended attempts have used of the site, as it counted at ``at_us``: it decays."""

claims = Table(
    "claims",
    metadata,
    Column("name", Text, primary_key=True),
    Column("token", Text, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
)
