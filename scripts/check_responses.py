"""Holds recorded answers against the official schemas and sums; see scripts/check-responses."""
import collections
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import sys

ON_LOOPBACK = "want https and no trailing slash"
UCP_VERSION, ACP_VERSION = "2026-04-08", "2026-04-17"


def tool(tools, name):
    """A validator script as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(tools / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def validators(specs):
    """For each protocol a function (kind, body) -> list of complaints."""
    tools = pathlib.Path(os.environ.get("SPECS_TOOLS", specs.parent / "tools"))
    os.environ["SPECS_ACP"] = str(specs / "acp")
    ucp, acp = tool(tools, "validate_ucp"), tool(tools, "validate_acp")
    schemas = ucp.Schemas(str(specs / "ucp" / UCP_VERSION), False, [], UCP_VERSION)
    versions = acp.Specs(False)

    def check_ucp(kind, body):
        found = ucp.check(schemas, kind, body, UCP_VERSION, True)
        # Warnings count as well, but for one: gateways under test are on loopback, over plain http.
        return [f"{path}: {text}" for level, path, text in found if (level, text) != ("warning", ON_LOOPBACK)]

    def check_acp(kind, body):
        found = list(acp.complaints(versions.validator(ACP_VERSION, kind), body))
        if kind in acp.SESSION_KINDS:
            found += acp.arithmetic(body, ACP_VERSION)
        return [f"{path}: {text}" for path, text in found]

    return {"ucp": check_ucp, "acp": check_acp}


def kind_of(answer):
    """The schema that an answer has to fit."""
    protocol, operation, status, body = (answer[key] for key in ("protocol", "operation", "status", "body"))
    if protocol == "ucp":
        if status >= 400:
            return "transport_error"
        if operation == "profile":
            return "profile"
        if body.get("ucp", {}).get("status") == "error":
            return "error"
        return f"catalog_{operation}" if operation in ("search", "lookup", "product") else "checkout"
    if status >= 400:
        return "error"
    if operation == "discovery":
        return "discovery"
    return "completed_session" if body.get("status") == "completed" else "session"


def outcome_of(answer):
    """One word for what came of a call."""
    body = answer["body"]
    if answer["status"] >= 400:
        return str(body.get("code", "-"))
    if body.get("ucp", {}).get("status") == "error":
        return "error: " + body["messages"][0]["code"]
    versions = body.get("ucp", {}).get("version"), body.get("protocol", {}).get("version")
    return body.get("status") or next((version for version in versions if version), "-")


def anonymous(body):
    """Answers that differ in ids alone are checked once."""
    return re.sub(r"(chk|ord|go)_[a-z2-7]{32}", r"\1", json.dumps(body, sort_keys=True))


def main(folder, specs):
    answers = []
    for file in sorted(folder.glob("*.jsonl")):
        answers += [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    if not answers:
        print(f"no answers were recorded in {folder}: run the tests first")
        return 1
    table, different, bad = collections.Counter(), {}, 0
    for answer in answers:
        if not isinstance(answer["body"], dict):
            bad += 1
            print(f"NOT JSON {answer['protocol']} {answer['operation']} {answer['status']} in {answer['test']}")
            continue
        table[tuple(answer[key] for key in ("protocol", "operation", "status")) + (outcome_of(answer),)] += 1
        different.setdefault((answer["protocol"], kind_of(answer), anonymous(answer["body"])), answer)
    checks = validators(specs)
    for (protocol, kind, _), answer in different.items():
        complaints = checks[protocol](kind, answer["body"])
        if complaints:
            bad += 1
            print(f"INVALID {protocol} {kind}: {answer['operation']} {answer['status']} in {answer['test']}")
            print("\n".join(f"    {complaint}" for complaint in complaints[:4]))
            print(f"    {json.dumps(answer['body'])[:800]}")
    print(f"{'protocol':9}{'operation':11}{'status':>6}  {'outcome':40}{'times':>6}")
    for (protocol, operation, status, outcome), times in sorted(table.items()):
        print(f"{protocol:9}{operation:11}{status:>6}  {outcome:40}{times:>6}")
    print(f"{len(answers)} answers; different ones held against the official schemas and sums:")
    print(f"{len(different) - bad} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()))
