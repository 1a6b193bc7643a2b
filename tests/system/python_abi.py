# SPDX-License-Identifier: Apache-2.0
"""python_abi.py gantry.h: compares what python/gantry/_abi.py says of structs, calls and constants with the
header, by asking a compiler."""

import ctypes
import json
import re
import subprocess
import sys
import tempfile

from gantry import _abi

# For programs that speak HTTP themselves or have a control plane of their own, and what nobody asked for in
# Python.
NOT_BOUND = {
    "gantry_presign",
    "gantry_port_transports",
    "gantry_upload_copy",
    "gantry_upload_parts",
    "gantry_register_dmabuf",
    "gantry_token_get",
    "gantry_token_put",
    "gantry_token_drop",
    "gantry_open_shared",
    "gantry_set_log",
    "gantry_set_log_level",
    "gantry_obj_move",
    "gantry_url_join",
    "gantry_crc64nvme_combine",
    "gantry_crc64nvme_text",
    "gantry_set_ops",
    "gantry_handle_ctx",
    "gantry_max_callback_size",
    "gantry_obj_get",
    "gantry_obj_put",
}
CONSTANTS = {
    "S3": "GANTRY_S3",
    "SCALITY": "GANTRY_SCALITY",
    "NO_RDMA": "GANTRY_NO_RDMA",
    "RDMA_ONLY": "GANTRY_RDMA_ONLY",
    "TARGET_PER_CALL": "GANTRY_TARGET_PER_CALL",
    "READ_ONLY": "GANTRY_READ_ONLY",
    "REGISTER_MAX": "GANTRY_REGISTER_MAX",
    "UPLOAD_ID_MAX": "GANTRY_UPLOAD_ID_MAX",
    "PARTS_MAX": "GANTRY_PARTS_MAX",
    "PATH_NONE": "GANTRY_PATH_NONE",
    "PATH_RDMA": "GANTRY_PATH_RDMA",
    "PATH_HTTP": "GANTRY_PATH_HTTP",
    "PATH_RDMA_STAGED": "GANTRY_PATH_RDMA_STAGED",
    "DEVICE": "GANTRY_DEVICE",
    "COUNTED": "GANTRY_COUNTED",
    "STAGED": "GANTRY_STAGED",
    "WAIT_NONE": "GANTRY_WAIT_NONE",
    "WAIT_STREAM": "GANTRY_WAIT_STREAM",
    "WAIT_EVENT": "GANTRY_WAIT_EVENT",
    "MEM_SYSTEM": "GANTRY_MEM_SYSTEM",
    "MEM_MANAGED": "GANTRY_MEM_MANAGED",
    "MEM_DEVICE": "GANTRY_MEM_DEVICE",
    "MEM_UNKNOWN": "GANTRY_MEM_UNKNOWN",
    "MEM_INVALID": "GANTRY_MEM_INVALID",
}

PROGRAM = r"""
#include <cstdio>
#include <type_traits>
#include "%s"
template <class T> void kind() {
	if (std::is_void<T>::value) printf("\"void\"");
	else if (std::is_pointer<T>::value) printf("\"pointer\"");
	else printf("\"%%s%%zu\"", std::is_unsigned<T>::value ? "u" : "i", sizeof(typename
	std::conditional<std::is_void<T>::value, char, T>::type));
}
template <class R, class... A> void call(const char *name, R (*)(A...)) {
	printf("\"%%s()\": [", name);
	kind<R>();
	int dummy[] = { 0, (printf(", "), kind<A>(), 0)... };
	(void)dummy;
	printf("],\n");
}
#define FIELD(s, f) printf("\"%%s.%%s\": [%%zu, %%zu],\n", #s, #f, offsetof(struct s, f), sizeof(((struct s *)0)->f))
int main() {
	printf("{\n");
%s
	printf("\"end\": 0}\n");
}
"""


def kind(t):
    if t is None:
        return "void"
    if (
        t in (ctypes.c_char_p, ctypes.c_void_p)
        or issubclass(t, ctypes._Pointer)
        or issubclass(t, ctypes._CFuncPtr)
    ):
        return "pointer"
    return ("u" if t(-1).value > 0 else "i") + str(ctypes.sizeof(t))


def main():
    header = sys.argv[1]
    text = re.sub(r"/\*.*?\*/", "", open(header, encoding="utf-8").read(), flags=re.S)
    declared = {m for m in re.findall(r"\b(gantry_\w+)\(", text) if not m.endswith("_fn")}
    lines, want = [], {"end": 0}
    for name, struct in _abi.STRUCTS.items():
        lines.append(f'printf("\\"{name}\\": %zu,\\n", sizeof(struct {name}));')
        want[name] = ctypes.sizeof(struct)
        for field, *_ in struct._fields_:
            lines.append(f"FIELD({name}, {field});")
            d = getattr(struct, field)
            want[f"{name}.{field}"] = [d.offset, d.size]
    for name, (restype, argtypes) in _abi.CALLS.items():
        lines.append(f'call("{name}", {name});')
        want[f"{name}()"] = [kind(restype)] + [kind(a) for a in argtypes]
    for ours, theirs in CONSTANTS.items():
        lines.append(f'printf("\\"{theirs}\\": %lld,\\n", (long long){theirs});')
        want[theirs] = getattr(_abi, ours)
    with tempfile.TemporaryDirectory() as d:
        with open(f"{d}/abi.cc", "w", encoding="utf-8") as f:
            f.write(PROGRAM % (header, "\n".join(lines)))
        libs = ["-L" + sys.argv[2], "-lgantry"] if len(sys.argv) > 2 else []
        subprocess.run(
            [
                "g++",
                "-Wall",
                "-Werror",
                "-o",
                f"{d}/abi",
                f"{d}/abi.cc",
                *libs,
                "-Wl,--unresolved-symbols=ignore-all",
            ],
            check=True,
        )
        said = subprocess.run([f"{d}/abi"], stdout=subprocess.PIPE, check=True, text=True).stdout
    have = json.loads(said)
    bad = [f"{k}: the header has {have.get(k)}, _abi.py {want[k]}" for k in want if want[k] != have.get(k)]
    bad += [
        f"{c}: in the header, and neither in _abi.py nor in NOT_BOUND"
        for c in sorted(declared - set(_abi.CALLS) - NOT_BOUND)
    ]
    bad += [f"{c}: not in the header" for c in sorted((set(_abi.CALLS) | NOT_BOUND) - declared)]
    # A struct with fewer fields than the header's would have fitted so far.
    print("\n".join(bad) or f"{len(want)} facts agree")
    return 1 if bad else 0


sys.exit(main())
