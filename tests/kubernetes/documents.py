"""Checks the documents that Kustomize and Helm render, and the Compose file.

Usage: documents.py valid FILE | equal ONE TWO | files FILE FOLDER | compose FILE
valid: the schemas of Kubernetes, those of schemas/ for its extensions, and what the extensions refer to.
equal: whether both have the same objects, but for the namespace and the name of the ConfigMap, which only Kustomize makes, and the
annotations of the pods, which only Helm makes.
files: writes the files of the ConfigMap `lockhouse-config` to a folder.
compose: the schema of Compose, that what the services refer to is there, and the rights and the lifecycle of each service.
Ends with status 1, and says why, if a check fails.
"""

import json
import pathlib
import re
import sys

import check_jsonschema
import jsonschema
import kubernetes_validate
import yaml

SCHEMAS = pathlib.Path(__file__).resolve().parent / "schemas"
COMPOSE = pathlib.Path(check_jsonschema.__file__).parent / "builtin_schemas/vendor/compose-spec.json"


def documents(path):
    return [document for document in yaml.safe_load_all(pathlib.Path(path).read_text()) if document]


def check_schema(document, schema):
    jsonschema.Draft202012Validator(json.loads(schema.read_text())).validate(document)


def check_objects(objects):
    for found in objects:
        schema = SCHEMAS / f"{found['kind']}.json"
        if schema.exists():
            check_schema(found, schema)
        else:
            # Fails if there is no schema, too.
            kubernetes_validate.validate(found, kubernetes_validate.latest_version(), strict=True)
    for monitor in of_kind(objects, "ServiceMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        services = [one for one in of_kind(objects, "Service") if wanted <= one["metadata"].get("labels", {}).items()]
        assert len(services) == 1, f"the ServiceMonitor selects {len(services)} services"
        ports = {port["name"] for port in services[0]["spec"]["ports"]}
        assert all(endpoint["port"] in ports for endpoint in monitor["spec"]["endpoints"]), f"the service has the ports {ports}"
        assert monitor["spec"]["jobLabel"] in services[0]["metadata"]["labels"], "the service has no such label for the job"
    for scaled in of_kind(objects, "ScaledObject"):
        target = scaled["spec"]["scaleTargetRef"]
        found = [one for one in of_kind(objects, target["kind"]) if one["metadata"]["name"] == target["name"]]
        assert len(found) == 1 and "replicas" not in found[0]["spec"], "the ScaledObject has no target whose number it may set"


def of_kind(objects, kind):
    return [one for one in objects if one["kind"] == kind]


def comparable(objects):
    """The objects by kind and name, without what only Kustomize or only Helm makes."""
    text = re.sub(r"\blockhouse-config-[0-9a-z]{10}\b", "lockhouse-config", json.dumps(objects))
    found = {(one["kind"], one["metadata"]["name"]): one for one in json.loads(text) if one["kind"] != "Namespace"}
    for one in of_kind(found.values(), "StatefulSet"):
        one["spec"]["template"]["metadata"].pop("annotations", None)
    return found


def check_equal(one, two):
    one, two = comparable(documents(one)), comparable(documents(two))
    different = sorted(key for key in one.keys() | two.keys() if one.get(key) != two.get(key))
    assert not different, f"these objects differ: {different}"


def write_files(objects, folder):
    (config,) = (one for one in of_kind(objects, "ConfigMap") if one["metadata"]["name"].startswith("lockhouse-config"))
    for name, text in config["data"].items():
        (pathlib.Path(folder) / name).write_text(text)


def check_compose(path):
    (compose,) = documents(path)
    check_schema(compose, COMPOSE)
    folder = pathlib.Path(path).parent
    for name, service in compose["services"].items():
        used = {
            "networks": set(service.get("networks", [])),
            "volumes": {volume.split(":")[0] for volume in service.get("volumes", [])},
            "configs": {config["source"] for config in service.get("configs", [])},
            "secrets": {secret["source"] for secret in service.get("secrets", [])},
            "services": set(service.get("depends_on", {})),
        }
        for kind, names in used.items():
            assert names <= compose[kind].keys(), f"{name} uses {kind} that the file does not have: {names - compose[kind].keys()}"
        sealed = service["read_only"] and service["cap_drop"] == ["ALL"] and "no-new-privileges:true" in service["security_opt"]
        assert sealed and not service.get("privileged"), f"{name} has more rights than it needs"
        lifecycle = {"healthcheck", "stop_grace_period"} - service.keys()
        assert service["restart"] == "no" or not lifecycle, f"{name} runs all the time without {lifecycle}"
        profiles = [option.removeprefix("seccomp:") for option in service["security_opt"] if option.startswith("seccomp:")]
        assert all((folder / profile).is_file() for profile in profiles), f"{name} names a profile that is not there"
    files = [config["file"] for config in compose["configs"].values()]
    assert all((folder / file).is_file() for file in files), f"one of these is not there: {files}"


def main():
    command, *paths = sys.argv[1:]
    commands = {
        "valid": lambda path: check_objects(documents(path)),
        "equal": check_equal,
        "files": lambda path, folder: write_files(documents(path), folder),
        "compose": check_compose,
    }
    try:
        commands[command](*paths)
    except (AssertionError, jsonschema.ValidationError, kubernetes_validate.SchemaNotFoundError) as fault:
        sys.exit(f"{getattr(fault, 'message', fault)}")


main()
