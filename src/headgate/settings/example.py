"""Example: the settings file that `headgate init` writes. It loads as it is."""

from typing import Final

EXAMPLE: Final = """\
# Settings of Headgate. `headgate config check` judges this file, `headgate config show` shows what
# is in force. Relative paths start at this file's folder. The environment can replace a value:
# HEADGATE_STORE, HEADGATE_LAKE, HEADGATE_NAMESPACE, HEADGATE__STREAMS__ORDERS__SHIFT=1m
# A secret is named, never written: ${env:NAME} or ${file:PATH}.

namespace: default                # keeps installations in one store apart
store: file:./state               # for several machines: zk://h1,h2/chroot or es://h1,h2/index
lake: ./lake                      # or {root: ./lake, file_mode: "640", group: data}

streams:
  orders:
    source:
      kind: files                 # a folder into which somebody drops files
      path: ./incoming
      format: json                # one JSON object a line; or csv, text, parquet; may be gzipped
      # lanes: 1                  # source partitions: so many shards can share the files
      # include: ["*.json", "*.json.gz"]
      # exclude: ["test/*"]
      # min_age: 10s              # younger files are left alone; .x, _x and *.tmp always are
      # after_read: keep          # keep, move (to move_to) or delete, once the records are landed
      # move_to: ./done
    event_time:                   # exactly one of json, regex, column, sql
      json: $.at
      unit: ms                    # ms or s since 1970; or, for texts, parse: iso
    land_as: parquet              # parquet, avro, json, text
    # codec: zstd                 # of parquet also snappy, gzip, lz4, none; of json and text gzip
    folder: "{yyyy}-{MM}-{dd}/{HH}/{stream}/data"
    shards: 1                     # how many nodes can share it; fixed by its first commit
    shift: 5m                     # wall time that one commit covers
    grace: 30s                    # wait after a shift's end
    allowed_lateness: 10m         # so much later than others a record may come
    future_skew: 5m               # an event time further ahead is not believed
    late_records: divert          # divert or dead-letter
    # first_hour: 2026-11-01T00   # in UTC; without it, the first commit decides
    # last_hour: 2027-01-31T23    # a stream that ends: read until this hour has passed
    # record_size_max: 16MB       # longer records are dead letters
    # round_size: 512MB           # so much waiting starts a round before the shift ends
    # merge: false                # true: small files of an hour become few, before its flag
    # target_size: 128MB          # of a file, about
    # nodes: [big]                # only nodes with one of these labels

spark:
  master: "local[*]"              # or a cluster's; or remote: sc://host:15002 for Spark Connect
  conf: {}                        # Spark's own settings
  packages: []                    # none: those tested with this line of Spark

# node: {workers: 2, labels: []}  # what `headgate run` starts a node with
"""
