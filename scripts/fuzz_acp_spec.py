#!/usr/bin/env python3
"""Makes a copy of ACP's OpenAPI description that a conforming session fits.

    fuzz_acp_spec.py DESCRIPTION.yaml OUT.yaml

What is changed; the JSON Schema of the same version, which the text calls the reference, has the first three so:
- a session may hold `order` (the description forbids unknown members and forgets it, so that not even its own
  `CheckoutSessionWithOrder` can be met);
- `display_order` is a property of a payment handler (the description has it beside `properties`);
- an error may hold `supported_versions`;
- a complete without an order (declined, not ready, in progress) answers 200 with the session: see docs/conformance.md.
"""
import sys

import yaml


def main():
    with open(sys.argv[1]) as file:
        api = yaml.safe_load(file)
    schemas = api["components"]["schemas"]
    schemas["CheckoutSessionBase"]["properties"].setdefault("order", {"$ref": "#/components/schemas/Order"})
    handler = schemas["PaymentHandler"]
    if "display_order" in handler:
        handler["properties"]["display_order"] = handler.pop("display_order")
    schemas["Error"]["properties"].setdefault("supported_versions", {"type": "array", "items": {"type": "string"}})
    for path, item in api["paths"].items():
        if path.endswith("/complete"):
            content = item["post"]["responses"]["200"]["content"]["application/json"]
            content["schema"] = {"anyOf": [content["schema"], {"$ref": "#/components/schemas/CheckoutSession"}]}
    with open(sys.argv[2], "w") as file:
        yaml.safe_dump(api, file, sort_keys=False)


if __name__ == "__main__":
    main()
