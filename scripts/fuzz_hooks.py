"""Hooks for schemathesis: generated requests that get past the door.

A generator that knows only the description asks for products nobody sells and sessions nobody opened: nearly all
of it ends at the first check. These hooks mix what exists into what was generated: item ids, sessions opened at
the start and during the run, payment handlers and tokens, whole bodies that are fine, keys used before; for the
catalogue ids of products and variants, words, categories, options, and the cursors of earlier answers. Now and then
one value somewhere in the body is replaced by an odd one. What is mixed in depends on the generated request alone
and on the sessions known so far, so that a seed reproduces a run.

Environment: FUZZ_URL (the gateway), FUZZ_PROTOCOL (`ucp` or `acp`), FUZZ_COUNTS (a file for the counts).
"""
import atexit
import collections
import copy
import hashlib
import json
import os
import random
import threading
import urllib.request
import uuid

import schemathesis

URL = os.environ["FUZZ_URL"]
UCP = os.environ["FUZZ_PROTOCOL"] == "ucp"
HEADERS = (
    {"UCP-Agent": 'profile="https://spck.dev/agent"'}
    if UCP
    else {"Authorization": "Bearer test-token", "API-Version": "2026-04-17"}
)
ITEMS = ["bouquet_roses", "pot_ceramic", "bouquet_tulips", "bouquet_mixed_small", "bouquet_mixed_large", "bouquet_roses", "pot_ceramic",
         "bouquet_mixed", "gardenias"]
# What the catalogue is asked for: products, variants, article numbers, one with a comma, and what is not there.
IDS = ITEMS + ["101", "107", "108", "109", "bouquet_mixed_medium", "bouquet_lilies", "orchid_white", "nothing", "a,b"]
WORDS = ["bouquet", "bouquet", "roses", "pot", "*", "zzz"]
CATEGORIES = ["uncategorized", "Vessels", "tools", "17", "no-such-thing"]
CODES = ["10OFF", "WELCOME20", "POT200", "10off", "nothing"]
TOKENS = ["success_token", "success_token", "fail_token", "challenge_token", "tok_declined_silent", "unheard_of"]
OPTIONS = ["std-ship", "exp-ship-us", "exp-ship-intl", "by-pigeon"]
DEEP = json.loads("[" * 24 + "]" * 24)
# A lone surrogate is not among them: schemathesis itself trips over one that a hook puts in.
ODD = [None, True, "", " ", "\u0000", "\U0001f339", "x" * 5000, 0, -1, 1e308, 2**53, 10**40, 1.5, [], {}, {"": 1}, DEEP]

lock = threading.Lock()
sessions = collections.deque(maxlen=60)
keys = collections.deque(maxlen=40)
# Questions and the cursors of their answers.
cursors = collections.deque(maxlen=20)
sent = collections.defaultdict(lambda: collections.deque(maxlen=20))
counts = collections.Counter()


def address():
    if UCP:
        return {"id": "home", "first_name": "Ada", "last_name": "Byron", "street_address": "12 Main Street",
                "address_locality": "Springfield", "address_region": "CA", "postal_code": "90210", "address_country": "US"}
    return {"name": "Ada Byron", "line_one": "12 Main Street", "city": "Springfield", "state": "CA", "country": "US",
            "postal_code": "90210"}


def good(chance):
    """A body of a create or an update that is fine."""
    quantity = chance.choice([1, 1, 2, 3, 9999])
    buyer = {"first_name": "Ada", "last_name": "Byron", "email": "ada@example.org", "phone_number": "+12025550143"}
    if UCP:
        method = {"type": "shipping", "destinations": [address()]}
        if chance.random() < 0.4:
            method["groups"] = [{"selected_option_id": chance.choice(OPTIONS)}]
        lines = [{"item": {"id": item}, "quantity": quantity} for item in chance.sample(ITEMS, chance.randint(1, 3))]
        body = {"line_items": lines, "buyer": buyer, "fulfillment": {"methods": [method]}}
    else:
        lines = [{"id": item, "quantity": quantity} for item in chance.sample(ITEMS, chance.randint(1, 3))]
        body = {"line_items": lines, "currency": "usd", "capabilities": {}, "buyer": buyer,
                "fulfillment_details": {"address": address()}}
        if chance.random() < 0.4:
            body["selected_fulfillment_options"] = [
                {"type": "shipping", "option_id": chance.choice(OPTIONS), "item_ids": ["li_1"]}]
    if chance.random() < 0.3:
        body["discounts"] = {"codes": chance.sample(CODES, chance.randint(0, 2))}
    return body


def payment(chance):
    """A body of a completion that is fine."""
    token = chance.choice(TOKENS)
    if UCP:
        return {"payment": {"instruments": [{"id": "pi_1", "handler_id": "mock_payment_handler", "type": "card",
                                             "selected": True, "credential": {"type": "token", "token": token}}]}}
    return {"payment_data": {"handler_id": "mock_payment_handler",
                             "instrument": {"type": "card", "credential": {"type": "spt", "token": token}}}}


def open_session(chance):
    """A checkout that can be paid."""
    body = good(chance)
    line = body["line_items"][0]
    line["quantity"] = 1
    (line["item"] if UCP else line)["id"] = "bouquet_roses"
    body["line_items"] = [line]
    body.pop("selected_fulfillment_options", None)
    path = "/ucp/checkout-sessions" if UCP else "/acp/checkout_sessions"
    headers = {**HEADERS, "Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        sessions.append(json.load(answer)["id"])


def real_ids(node, chance):
    """Puts what exists in the place of ids, wherever a body has them."""
    if isinstance(node, list):
        for entry in node:
            real_ids(entry, chance)
    if not isinstance(node, dict):
        return
    for name, value in node.items():
        if chance.random() < 0.25:
            continue
        if name == "item" and isinstance(value, dict):
            value["id"] = chance.choice(ITEMS)
        elif name == "line_items" and isinstance(value, list) and not UCP:
            for line in value:
                if isinstance(line, dict):
                    line["id"] = chance.choice(ITEMS)
        elif name == "quantity":
            node[name] = chance.choice([1, 2, 5])
        elif name == "handler_id":
            node[name] = "mock_payment_handler"
        elif name == "token":
            node[name] = chance.choice(TOKENS)
        elif name in ("selected_option_id", "option_id"):
            node[name] = chance.choice(OPTIONS)
        elif name == "codes" and isinstance(value, list):
            node[name] = chance.sample(CODES, chance.randint(0, 2))
        elif name == "ids" and isinstance(value, list):
            node[name] = chance.choices(IDS, k=max(1, min(len(value), 12)))
        elif name == "categories" and isinstance(value, list):
            node[name] = chance.sample(CATEGORIES, 1)
        elif name == "currency":
            node[name] = "USD" if UCP else "usd"
        real_ids(node[name], chance)


def browse(path, chance):
    """A body of a search, a look-up or a close look that is fine."""
    if path.endswith("/lookup"):
        body = {"ids": chance.choices(IDS, k=chance.choice([1, 2, 5, 10, 20]))}
    elif path.endswith("/product"):
        body = {"id": chance.choice(IDS)}
        if chance.random() < 0.6:
            body["selected"] = [{"name": "Size", "label": chance.choice(["Small", "Medium", "Large", "Huge"])}]
        if chance.random() < 0.3:
            body["preferences"] = ["Size"]
    else:
        body = {"query": chance.choice(WORDS), "pagination": {"limit": chance.choice([1, 3, 5, 10, 50])}}
        if cursors and chance.random() < 0.3:
            question, cursor = chance.choice(cursors)
            # With another question now and then.
            body = {**(question if chance.random() < 0.8 else body), "pagination": {"cursor": cursor}}
            return copy.deepcopy(body)
    filters = {}
    if chance.random() < 0.3:
        filters["categories"] = chance.sample(CATEGORIES, chance.randint(1, 2))
    if chance.random() < 0.3:
        filters["price"] = {"min": chance.choice([0, 1000, 2000]), "max": chance.choice([2000, 4000, 2**53])}
    if filters:
        body["filters"] = filters
        body["context"] = {"currency": chance.choice(["USD", "USD", "EUR"])}
    return body


def places(node, found):
    for name, value in node.items() if isinstance(node, dict) else enumerate(node):
        found.append((node, name))
        if isinstance(value, (dict, list)):
            places(value, found)


def mix(body, path, chance):
    """A generated body with what exists in it."""
    body = copy.deepcopy(body)
    catalogue = "/catalog/" in path
    if catalogue or path.startswith("/checkout") and not path.endswith("/cancel"):
        fine = browse(path, chance) if catalogue else payment(chance) if path.endswith("/complete") else good(chance)
        kind = chance.random()
        if kind < 0.3:
            body = fine
        elif kind < 0.5:
            body = {**{name: value for name, value in body.items() if chance.random() < 0.3}, **fine}
        elif kind < 0.7:
            body = {**fine, **{name: value for name, value in body.items() if chance.random() < 0.3}}
    real_ids(body, chance)
    if chance.random() < 0.2:
        found = []
        places(body, found)
        if found:
            node, name = chance.choice(found)
            node[name] = copy.deepcopy(chance.choice(ODD))
        else:
            body[""] = copy.deepcopy(chance.choice(ODD))
    return body


@schemathesis.hook
def before_call(context, case, kwargs):
    said = [case.method, case.path, case.path_parameters, case.query, sorted((case.headers or {}).items()), case.body]
    text = repr(said)
    chance = random.Random(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    parameters = case.path_parameters or {}
    with lock:
        while len(sessions) < 8:
            open_session(chance)
        for name in parameters:
            if chance.random() < 0.8 and sessions:
                # The newest ones first: older ones have ended.
                at = min(int(chance.expovariate(0.25)), len(sessions) - 1)
                parameters[name] = sessions[-1 - at]
        if isinstance(case.body, dict):
            case.body = mix(case.body, case.path, chance)
        if case.method.upper() in ("POST", "PUT") and chance.random() < 0.9:
            case.headers = case.headers or {}
            key = str(uuid.UUID(int=chance.getrandbits(128)))
            before = sent[(case.method, case.path)]
            kind = chance.random()
            if kind < 0.05 and keys:
                key = chance.choice(keys)
            elif kind < 0.15 and before:
                # The whole request once more.
                key, case.path_parameters, case.body = copy.deepcopy(chance.choice(before))
            else:
                keys.append(key)
                before.append(copy.deepcopy((key, case.path_parameters, case.body)))
            for name in [name for name in case.headers if name.lower() == "idempotency-key"]:
                del case.headers[name]
            case.headers["Idempotency-Key"] = key


@schemathesis.hook
def after_call(context, case, response):
    with lock:
        path = case.path.split("?")[0]
        counts[(case.method.upper(), path, response.status_code)] += 1
        if response.status_code in (200, 201):
            try:
                session = response.json()
                if path.endswith("/catalog/search"):
                    question = {name: value for name, value in case.body.items() if name != "pagination"}
                    cursors.append((copy.deepcopy(question), session["pagination"]["cursor"]))
                keep_or_forget(session["id"], session["status"])
            except (ValueError, KeyError, TypeError):
                pass


def keep_or_forget(session, status):
    """Ended sessions stay among the others now and then only."""
    ended = status in ("completed", "canceled", "expired")
    if not ended and session not in sessions:
        sessions.append(session)
    elif ended and session in sessions and sum(counts.values()) % 4:
        sessions.remove(session)


def write_counts():
    rows = [[*key, count] for key, count in sorted(counts.items())]
    with open(os.environ["FUZZ_COUNTS"], "w") as file:
        json.dump(rows, file)


atexit.register(write_counts)
