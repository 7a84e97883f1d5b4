#!/usr/bin/env python3
"""sbom.py TARGET: prints an SPDX 2.3 document of all packages that are compiled into kk for a target.

`cargo metadata` names the packages, Cargo.lock their checksums. SOURCE_DATE_EPOCH is the time of the document, so the same
commit gives the same document."""

import datetime
import hashlib
import json
import os
import subprocess
import sys
import tomllib

ROOT = "kk"
target = sys.argv[1]
command = ["cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={target}", "--features=kk/portable"]
metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
with open("Cargo.lock", "rb") as lock:
    checksums = {(one["name"], one["version"]): one.get("checksum") for one in tomllib.load(lock)["package"]}


def spdx_id(package):
    name = f"{package['name']}-{package['version']}"
    return "SPDXRef-" + "".join(character if character.isalnum() or character in ".-" else "-" for character in name)


def dependencies(node):
    """Packages that are compiled into the binary or run in its build, without those of tests."""
    return [one["pkg"] for one in node["deps"] if any(kind["kind"] in (None, "build") for kind in one["dep_kinds"])]


root = next(package["id"] for package in packages.values() if package["name"] == ROOT)
found, waiting, relations = set(), [root], []
while waiting:
    package = waiting.pop()
    if package in found:
        continue
    found.add(package)
    for dependency in dependencies(nodes[package]):
        relations.append((package, dependency))
        waiting.append(dependency)


def described(package):
    name, version = package["name"], package["version"]
    entry = {
        "SPDXID": spdx_id(package),
        "name": name,
        "versionInfo": version,
        "licenseDeclared": (package["license"] or "NOASSERTION").replace("/", " OR "),
        "licenseConcluded": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
    }
    if package["source"]:
        purl = f"pkg:cargo/{name}@{version.replace('+', '%2B')}"
        entry["externalRefs"] = [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}
        ]
        entry["checksums"] = [{"algorithm": "SHA256", "checksumValue": checksums[(name, version)]}]
    return entry


version = packages[root]["version"]
parts = [described(package) for package in sorted((packages[one] for one in found), key=spdx_id)]
# Two documents with the same content are the same document.
unique = hashlib.sha256(json.dumps([version, target, parts]).encode()).hexdigest()
time = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
document = {
    "spdxVersion": "SPDX-2.3",
    "dataLicense": "CC0-1.0",
    "SPDXID": "SPDXRef-DOCUMENT",
    "name": f"kk-{version}-{target}",
    "documentNamespace": f"https://spdx.org/spdxdocs/kk-{unique}",
    "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: kk-sbom.py"]},
    "documentDescribes": [spdx_id(packages[root])],
    "packages": parts,
    "relationships": [
        {
            "spdxElementId": spdx_id(packages[one]),
            "relationshipType": "DEPENDS_ON",
            "relatedSpdxElement": spdx_id(packages[other]),
        }
        for one, other in sorted(relations)
    ],
}
print(json.dumps(document, indent=1))
