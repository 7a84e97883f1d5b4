#!/usr/bin/env python3
"""Measures every minute how long each node's kubelet takes to accept a connection.

Nodes are only remembered (`executeHookOnEvent` is empty): the schedule brings their snapshot. The metrics are on the
operator's port at /metrics/hooks. They are of one group, so that those of a removed node vanish.
"""

import json
import os
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor

KUBELET = 10250
TIMEOUT = 2  # seconds
CONFIG = {
    "configVersion": "v1",
    "schedule": [
        {"name": "every-minute", "crontab": "* * * * *", "queue": "nodes", "includeSnapshotsFrom": ["nodes"]}
    ],
    "kubernetes": [
        {
            "name": "nodes",
            "apiVersion": "v1",
            "kind": "Node",
            "executeHookOnEvent": [],
            "executeHookOnSynchronization": False,
            "jqFilter": (
                "{name: .metadata.name,"
                ' address: [.status.addresses[]? | select(.type == "InternalIP").address][0]}'
            ),
            "keepFullObjectsInMemory": False,
        }
    ],
}


def ping(node):
    """The metrics of one node: whether it answers and, when it does, after how many seconds."""
    begun = time.monotonic()
    metrics = []
    try:
        socket.create_connection((node["address"], KUBELET), TIMEOUT).close()
        metrics.append(("node_ping_seconds", time.monotonic() - begun))
        metrics.append(("node_ping_ok", 1))
    except OSError as error:
        print(f"node {node['name']} does not answer: {error}", file=sys.stderr)
        metrics.append(("node_ping_ok", 0))
    return [
        {"name": name, "action": "set", "value": value, "labels": {"node": node["name"]}, "group": "ping"}
        for name, value in metrics
    ]


def main():
    if sys.argv[1:] == ["--config"]:
        json.dump(CONFIG, sys.stdout)
        return
    with open(os.environ["BINDING_CONTEXT_PATH"], encoding="utf-8") as file:
        nodes = [item["filterResult"] for item in json.load(file)[-1]["snapshots"]["nodes"]]
    with ThreadPoolExecutor(max_workers=32) as pool, open(os.environ["METRICS_PATH"], "a", encoding="utf-8") as file:
        for metrics in pool.map(ping, nodes):
            for metric in metrics:
                print(json.dumps(metric), file=file)


main()
