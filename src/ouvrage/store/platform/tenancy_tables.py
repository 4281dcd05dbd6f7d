"""The tables of organisations, people and their credentials, and of answers kept for repetitions.

Decides what is unique and what refers to what. ``organisations``, ``projects`` and ``memberships`` follow from facts and are
compared with them by ``ouvrage verify``; ``users``, passwords, tokens, sessions, keys and throttles are credentials, which
stand here alone. Truth values are integers, an absent project is the empty text, so that keys work alike on both databases.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text, UniqueConstraint

from ouvrage.store.schema import metadata

organisations = Table(
    "organisations",
    metadata,
    Column("org", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("side", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("billing", Text, nullable=False),
    Column("credit_limit", Text, nullable=False),
    Column("closed", Integer, nullable=False),
)

projects = Table(
    "projects",
    metadata,
    Column("project", Text, primary_key=True),
    Column("org", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("weight", Text, nullable=False),
    Column("trusted", Integer, nullable=False),
    Column("closed", Integer, nullable=False),
    UniqueConstraint("org", "name", name="projects_name"),
)

users = Table(
    "users",
    metadata,
    Column("user_id", Text, primary_key=True),
    Column("org", Text, nullable=False),
    Column("login", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("password", Text),
    Column("changed_us", BigInteger, nullable=False),
    Column("issuer", Text),
    Column("subject", Text),
    UniqueConstraint("issuer", "subject", "org", name="users_identity"),
    Index("users_org", "org"),
)

memberships = Table(
    "memberships",
    metadata,
    Column("user_id", Text, primary_key=True),
    Column("org", Text, primary_key=True),
    Column("project", Text, primary_key=True),
    Column("login", Text, nullable=False),
    Column("role", Text, nullable=False),
    Index("memberships_org", "org"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("token", Text, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Column("used_us", BigInteger),
    Column("revoked_us", BigInteger),
    Index("tokens_user", "user_id"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("session", Text, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("seen_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Index("sessions_user", "user_id"),
)

ssh_keys = Table(
    "ssh_keys",
    metadata,
    Column("ssh_key", Text, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    UniqueConstraint("user_id", "fingerprint", name="ssh_keys_fingerprint"),
    UniqueConstraint("user_id", "name", name="ssh_keys_name"),
)

enrolments = Table(
    "enrolments",
    metadata,
    Column("enrolment", Text, primary_key=True),
    Column("hash", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Column("used_us", BigInteger),
    Column("node", Text),
)

node_keys = Table(
    "node_keys",
    metadata,
    Column("node_key", Text, primary_key=True),
    Column("node", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("revoked_us", BigInteger),
    Index("node_keys_node", "node"),
)

answers = Table(
    "idempotent_answers",
    metadata,
    Column("actor", Text, primary_key=True),
    Column("idempotency_key", Text, primary_key=True),
    Column("request", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Index("idempotent_answers_at", "at_us"),
)

throttles = Table(
    "login_throttles",
    metadata,
    Column("name", Text, primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("last_us", BigInteger, nullable=False),
    Column("until_us", BigInteger, nullable=False),
)
