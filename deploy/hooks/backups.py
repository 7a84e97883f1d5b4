#!/usr/bin/env python3
"""Converts Backups (backup.example.com) between their three versions.

v1alpha1 has `time: "03:10"`, v1beta1 has `hour` and `minute`, v1 has both in `at`. Steps between neighbours are enough:
the operator goes the whole way, from v1alpha1 to v1 by two steps.
"""

import json
import os
import sys

GROUP = "backup.example.com"


def split_time(spec):
    hour, minute = spec.pop("time").split(":")
    spec.update(hour=int(hour), minute=int(minute))


def join_time(spec):
    spec["time"] = f"{spec.pop('hour'):02}:{spec.pop('minute'):02}"


def nest_time(spec):
    spec["at"] = {"hour": spec.pop("hour"), "minute": spec.pop("minute")}


def flatten_time(spec):
    spec.update(spec.pop("at"))


STEPS = {
    ("v1alpha1", "v1beta1"): split_time,
    ("v1beta1", "v1alpha1"): join_time,
    ("v1beta1", "v1"): nest_time,
    ("v1", "v1beta1"): flatten_time,
}
CONFIG = {
    "configVersion": "v1",
    "kubernetesCustomResourceConversion": [
        {
            "name": "backups",
            "crdName": f"backups.{GROUP}",
            "conversions": [{"fromVersion": old, "toVersion": new} for old, new in STEPS],
        }
    ],
}


def convert(context):
    """All objects of the request; those of another version than the step's stay as they are."""
    old, new = context["fromVersion"], context["toVersion"]
    for item in context["review"]["request"]["objects"]:
        if item["apiVersion"] == f"{GROUP}/{old}":
            STEPS[old, new](item["spec"])
            item["apiVersion"] = f"{GROUP}/{new}"
        yield item


def main():
    if sys.argv[1:] == ["--config"]:
        json.dump(CONFIG, sys.stdout)
        return
    with open(os.environ["BINDING_CONTEXT_PATH"], encoding="utf-8") as file:
        (context,) = json.load(file)
    try:
        answer = {"convertedObjects": list(convert(context))}
    except (KeyError, ValueError) as error:
        answer = {"failedMessage": f"not a Backup of {context['fromVersion']}: {error!r}"}
    with open(os.environ["CONVERSION_RESPONSE_PATH"], "w", encoding="utf-8") as file:
        json.dump(answer, file)


main()
