"""Reads lines `name version|licence` of `cargo tree` and refuses what must not be in the tree."""
import re
import sys

ALLOWED = {
    "Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "Unicode-3.0", "CC0-1.0", "0BSD", "MPL-2.0",
    "OpenSSL", "Unlicense", "BSL-1.0", "CDLA-Permissive-2.0", "MIT-0",
}
BANNED = {"ring", "openssl", "openssl-sys", "native-tls"}


def allowed(expression):
    """Whether one choice of the SPDX expression consists of allowed licences."""
    choices = re.split(r"\s+OR\s+|/", re.sub(r"[()]", " ", expression))
    return any(
        all(part.strip().split(" WITH ")[0] in ALLOWED for part in choice.split(" AND ")) for choice in choices
    )


crates = {line.strip().removesuffix(" (*)") for line in sys.stdin if "|" in line}
bad = []
for crate in sorted(crates):
    package, licence = crate.rsplit("|", 1)
    if not allowed(licence or "none"):
        bad.append(f"{package}: licence {licence}")
    if package.split()[0] in BANNED:
        bad.append(f"{package}: must not be in the tree")
print("\n".join(bad) or f"{len(crates)} crates, all licences fit, none is banned")
sys.exit(bool(bad))
