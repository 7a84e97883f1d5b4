#!/usr/bin/env python3
"""Restarts the pods of a Deployment when its ConfigMap changes.

The checksum of the ConfigMap is kept in an annotation of the pod template. A Deployment asks for it by the label
`checksum.example.com/of: NAME`; the ConfigMap of that name in its namespace has the label
`checksum.example.com/watch: "yes"`.
"""

import hashlib
import json
import os
import sys

ANNOTATION = "checksum.example.com/value"
CONFIG = {
    "configVersion": "v1",
    "kubernetes": [
        {
            "name": "configmaps",
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "group": "checksum",
            "labelSelector": {"matchLabels": {"checksum.example.com/watch": "yes"}},
            "jqFilter": "{namespace: .metadata.namespace, name: .metadata.name, content: {data, binaryData}}",
            "keepFullObjectsInMemory": False,
        },
        {
            "name": "deployments",
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "group": "checksum",
            "labelSelector": {"matchExpressions": [{"key": "checksum.example.com/of", "operator": "Exists"}]},
            "jqFilter": (
                "{namespace: .metadata.namespace, name: .metadata.name,"
                ' of: .metadata.labels["checksum.example.com/of"],'
                f' checksum: .spec.template.metadata.annotations["{ANNOTATION}"]}}'
            ),
            "keepFullObjectsInMemory": False,
        },
    ],
}


def checksum(content):
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def patches(snapshots):
    """What has to be changed: one patch for each Deployment whose annotation is not its ConfigMap's checksum."""
    configmaps = [item["filterResult"] for item in snapshots["configmaps"]]
    checksums = {(one["namespace"], one["name"]): checksum(one["content"]) for one in configmaps}
    for deployment in (item["filterResult"] for item in snapshots["deployments"]):
        wanted = checksums.get((deployment["namespace"], deployment["of"]))
        if wanted not in (None, deployment["checksum"]):
            yield {
                "operation": "MergePatch",
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "namespace": deployment["namespace"],
                "name": deployment["name"],
                "mergePatch": {"spec": {"template": {"metadata": {"annotations": {ANNOTATION: wanted}}}}},
                "ignoreMissingObject": True,
            }


def main():
    if sys.argv[1:] == ["--config"]:
        json.dump(CONFIG, sys.stdout)
        return
    with open(os.environ["BINDING_CONTEXT_PATH"], encoding="utf-8") as file:
        contexts = json.load(file)
    with open(os.environ["KUBERNETES_PATCH_PATH"], "a", encoding="utf-8") as file:
        # All bindings are of one group: the last context has the newest snapshots of both.
        for patch in patches(contexts[-1]["snapshots"]):
            print(json.dumps(patch), file=file)


main()
