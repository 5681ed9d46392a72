-- Generated from fields.yml by `make build`; do not edit.
PRAGMA user_version = 9;
CREATE TABLE intervals (
  id INTEGER PRIMARY KEY NOT NULL,
  count INTEGER NOT NULL,
  sum INTEGER,
  min INTEGER,
  max INTEGER,
  coding INTEGER NOT NULL,
  bins BLOB NOT NULL,
  generation INTEGER NOT NULL,
  bytes INTEGER
);
CREATE TABLE series (
  id INTEGER PRIMARY KEY NOT NULL,
  run TEXT NOT NULL,
  host TEXT NOT NULL,
  volume TEXT NOT NULL,
  job TEXT NOT NULL,
  op TEXT NOT NULL,
  kind TEXT NOT NULL,
  tag TEXT NOT NULL,
  process TEXT NOT NULL,
  segment INTEGER NOT NULL,
  layout TEXT NOT NULL,
  source TEXT NOT NULL,
  exact INTEGER NOT NULL,
  first_ns INTEGER,
  last_ns INTEGER,
  UNIQUE (run, host, volume, job, op, kind, tag, process, segment)
);
CREATE TABLE rollups (
  run TEXT NOT NULL,
  scope TEXT NOT NULL,
  kind TEXT NOT NULL,
  step_ns INTEGER NOT NULL,
  start_ns INTEGER NOT NULL,
  op TEXT NOT NULL,
  host TEXT NOT NULL,
  end_ns INTEGER NOT NULL,
  layout TEXT NOT NULL,
  count INTEGER NOT NULL,
  sum INTEGER,
  min INTEGER NOT NULL,
  mean REAL NOT NULL,
  max INTEGER NOT NULL,
  exact INTEGER NOT NULL,
  p50 REAL,
  p75 REAL,
  p90 REAL,
  p95 REAL,
  p99 REAL,
  p99_9 REAL,
  p99_99 REAL,
  final INTEGER NOT NULL,
  coding INTEGER NOT NULL,
  bins BLOB NOT NULL,
  bytes INTEGER,
  p50_low REAL,
  p75_low REAL,
  p90_low REAL,
  p95_low REAL,
  p99_low REAL,
  p99_9_low REAL,
  p99_99_low REAL,
  PRIMARY KEY (run, scope, kind, step_ns, start_ns, op, host)
);
CREATE TABLE runs (
  run TEXT PRIMARY KEY NOT NULL,
  load TEXT NOT NULL,
  state TEXT NOT NULL,
  step_ns INTEGER NOT NULL,
  attribution TEXT NOT NULL,
  start_ns INTEGER NOT NULL,
  zero TEXT NOT NULL,
  parameters TEXT NOT NULL,
  labels TEXT NOT NULL,
  loaded TEXT NOT NULL
);
CREATE TABLE sources (
  run TEXT NOT NULL,
  source TEXT NOT NULL,
  path TEXT NOT NULL,
  size INTEGER NOT NULL,
  digest TEXT NOT NULL,
  context TEXT NOT NULL,
  state TEXT NOT NULL,
  generation INTEGER NOT NULL,
  account TEXT NOT NULL,
  PRIMARY KEY (run, source)
);
CREATE TABLE checkpoints (
  run TEXT NOT NULL,
  source TEXT NOT NULL,
  watch TEXT NOT NULL,
  state TEXT NOT NULL,
  PRIMARY KEY (run, source)
);
CREATE TABLE watches (
  run TEXT NOT NULL,
  watch TEXT NOT NULL,
  final_ns INTEGER NOT NULL,
  largest_ns INTEGER NOT NULL,
  told_ns INTEGER NOT NULL,
  PRIMARY KEY (run, watch)
);
CREATE TABLE breaths (
  run TEXT NOT NULL,
  host TEXT NOT NULL,
  process TEXT NOT NULL,
  op TEXT NOT NULL,
  job TEXT NOT NULL,
  rate INTEGER NOT NULL,
  start_ns INTEGER NOT NULL,
  count INTEGER NOT NULL,
  known INTEGER NOT NULL,
  idle INTEGER NOT NULL,
  longest INTEGER NOT NULL,
  packets REAL NOT NULL,
  cycles REAL NOT NULL,
  packets_squared REAL NOT NULL,
  packets_cycles REAL NOT NULL,
  cycles_squared REAL NOT NULL,
  bytes REAL NOT NULL,
  bits REAL NOT NULL,
  cells BLOB NOT NULL,
  source TEXT NOT NULL,
  generation INTEGER NOT NULL,
  PRIMARY KEY (run, host, process, op, job, rate, start_ns)
);
CREATE TABLE points (
  run TEXT NOT NULL,
  host TEXT NOT NULL,
  process TEXT NOT NULL,
  op TEXT NOT NULL,
  job TEXT NOT NULL,
  place INTEGER NOT NULL,
  at_ns INTEGER NOT NULL,
  rate INTEGER NOT NULL,
  packets INTEGER NOT NULL,
  cycles INTEGER NOT NULL,
  source TEXT NOT NULL,
  generation INTEGER NOT NULL,
  PRIMARY KEY (run, host, process, op, job, place, at_ns)
);
CREATE TABLE marks (
  run TEXT NOT NULL,
  at_ns INTEGER NOT NULL,
  text TEXT NOT NULL,
  end_ns INTEGER,
  PRIMARY KEY (run, at_ns, text)
);
CREATE TABLE episodes (
  run TEXT NOT NULL,
  objective TEXT NOT NULL,
  labels TEXT NOT NULL,
  start_ns INTEGER NOT NULL,
  end_ns INTEGER NOT NULL,
  kind TEXT NOT NULL,
  percentile TEXT NOT NULL,
  threshold_ns INTEGER NOT NULL,
  window_ns INTEGER NOT NULL,
  peak_ns INTEGER,
  peak_open INTEGER NOT NULL,
  samples INTEGER NOT NULL,
  windows INTEGER NOT NULL,
  silent INTEGER NOT NULL,
  thin INTEGER NOT NULL,
  worst_host TEXT NOT NULL,
  state TEXT NOT NULL,
  least_rate REAL,
  lowest_rate REAL,
  PRIMARY KEY (run, objective, labels, start_ns)
);
CREATE TABLE judgements (
  run TEXT NOT NULL,
  objective TEXT NOT NULL,
  start_ns INTEGER NOT NULL,
  end_ns INTEGER NOT NULL,
  kind TEXT NOT NULL,
  percentile TEXT NOT NULL,
  threshold_ns INTEGER NOT NULL,
  window_ns INTEGER NOT NULL,
  state TEXT NOT NULL,
  PRIMARY KEY (run, objective)
);
CREATE TABLE findings (
  run TEXT NOT NULL,
  rank INTEGER NOT NULL,
  stamp TEXT NOT NULL,
  kind TEXT NOT NULL,
  labels TEXT NOT NULL,
  start_ns INTEGER NOT NULL,
  end_ns INTEGER NOT NULL,
  text TEXT NOT NULL,
  share REAL NOT NULL,
  missing_share REAL NOT NULL,
  content TEXT NOT NULL,
  PRIMARY KEY (run, rank)
);
