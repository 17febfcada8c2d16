"""The gateway: how a Spark session begins and ends, also when its Java process is gone."""
