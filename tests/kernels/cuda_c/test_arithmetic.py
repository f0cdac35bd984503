"""C's arithmetic, of kernels and hosts, against a C compiler: truncation, wrapping, promotion."""

import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from distlearn.kernels import KernelError, cuda_c
from distlearn.kernels.cuda_c import HostError, arithmetic, types
from distlearn.kernels.cuda_c.arithmetic import Known, UndefinedError
from distlearn.kernels.cuda_c.values import Conversions, Value, name

GCC = shutil.which("gcc") or shutil.which("cc")
VARIABLES = {"i": ("int", -7), "j": ("int", 5), "big": ("int", 2147483000),
             "u": ("unsigned int", 3), "v": ("unsigned int", 4294967290),
             "s": ("short", -300), "c": ("unsigned char", 250), "l": ("long long", -(1 << 40))}
FEW = settings(max_examples=2, phases=[Phase.generate], deadline=None,
               suppress_health_check=list(HealthCheck))  # each example is 40 expressions
BINARY = ["+", "-", "*", "/", "%", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=", "&&", "||"]


@st.composite
def expressions(draw, depth=3):
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from([*VARIABLES, "0", "1", "3", "7u", "31", "0xff", "100LL"]))
    kind = draw(st.integers(0, 9))
    inner = draw(expressions(depth=depth - 1))
    if kind == 0:
        return f"({draw(st.sampled_from(['-', '~', '!', '+']))}{inner})"
    if kind == 1:
        to = draw(st.sampled_from(["int", "unsigned", "short", "unsigned char", "long long"]))
        return f"(({to})({inner}))"
    if kind == 2:
        return f"V({inner} {draw(st.sampled_from(['<<', '>>']))} {draw(st.integers(0, 12))})"
    if kind == 3:
        return f"({inner} ? {draw(expressions(depth=depth - 1))} : i)"
    return f"V({inner} {draw(st.sampled_from(BINARY))} {draw(expressions(depth=depth - 1))})"


def declarations():
    return "".join(f"{kind} {name} = {value}{'LL' if 'long' in kind else ''};\n"
                   for name, (kind, value) in VARIABLES.items())


def compiled(parts, folder):
    """Values by gcc with wrapping arithmetic; None where C leaves the value undefined."""
    functions = "".join(f"long long f{n}(void) {{ return {part}; }}\n"
                        for n, part in enumerate(parts))
    # a compiler may not simplify (3 * big < 0) to (big < 0), which does not overflow
    text = ("#define V(...) ({ volatile __typeof__(__VA_ARGS__) t = (__VA_ARGS__); t; })\n"
            "#include <stdio.h>\n#include <unistd.h>\n#include <sys/wait.h>\n"
            + declarations() + functions + "int main(void) {\nlong long (*f[])(void) = {"
            + ", ".join(f"f{n}" for n in range(len(parts))) + "};\n"
            f"for (int n = 0; n < {len(parts)}; n++) {{ fflush(stdout); int s; pid_t p = fork();"
            'if (!p) { printf("%lld\\n", f[n]()); fflush(stdout); _exit(0); }'
            'waitpid(p, &s, 0); if (s) { printf("x\\n"); } }\nreturn 0; }\n')
    (folder / "a.c").write_text(text)
    outcomes = []
    for how in (["-fwrapv"], ["-fsanitize=signed-integer-overflow,integer-divide-by-zero",
                              "-fsanitize-undefined-trap-on-error"]):
        subprocess.run([GCC, "-w", "-O0", *how, "-o", folder / "a", folder / "a.c"], check=True)
        made = subprocess.run([folder / "a"], capture_output=True, text=True, check=True)
        outcomes.append([None if word == "x" else int(word) for word in made.stdout.split()])
    return outcomes


@pytest.mark.skipif(GCC is None, reason="there is no C compiler")
@FEW
@given(parts=st.lists(expressions(), min_size=40, max_size=40))
def test_integers_are_those_of_a_c_compiler(parts, tmp_path_factory):
    wrapping, strict = compiled(parts, tmp_path_factory.mktemp("c"))
    names = ", ".join(f"{kind} {name}" for name, (kind, _) in VARIABLES.items())
    text = "".join(f"__global__ void k{n}(long long *out, {names}) {{ out[0] = {part}; }}\n"
                   f"long long h{n}({names}) {{ return {part}; }}\n"
                   for n, part in enumerate(parts))
    program = cuda_c.load("#define V(...) (__VA_ARGS__)\n" + text)
    values = [value for _, value in VARIABLES.values()]
    for n, part in enumerate(parts):
        out = np.zeros(1, np.int64)
        for executor in ("simt", "oracle"):
            try:
                program[f"k{n}"].launch(1, 1, out, *values, executor=executor)
            except KernelError as error:
                assert error.kind in ("int32_overflow", "division_by_zero"), part
                assert strict[n] is None, part
            else:  # sums that overflow and come back are right, as on a machine
                assert out[0] == wrapping[n], part
        try:
            value = program.call(f"h{n}", *values).value
        except HostError as error:
            assert strict[n] is None, (part, error)
        else:
            assert value == strict[n] == wrapping[n], part


SMALL = st.integers(-40, 40)


@given(st.sampled_from(["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"]),
       st.tuples(SMALL, SMALL, SMALL).map(sorted), st.tuples(SMALL, SMALL, SMALL).map(sorted))
def test_bounds_hold_what_c_computes(op, a, b):
    """What is left out because of bounds must be right: any value between gives one between."""
    if op in ("<<", ">>"):
        b = [abs(n) % 8 for n in b]
        b.sort()
    left, right = (Value(name(word), types.LONG, (n[0], n[2])) for word, n in (("a", a), ("b", b)))
    try:
        right_value = arithmetic.binary(op, Known(types.LONG, a[1]), Known(types.LONG, b[1])).value
    except UndefinedError:
        return
    low, high = Conversions().arithmetic(op, replace(left, pure=True),
                                         replace(right, pure=True)).bounds
    assert low <= right_value <= high


FLOATS = ["a", "b", "2", "3.0f", "0.1", "((float)0.1)", "i", "u"]


@st.composite
def real(draw, depth=3):
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(FLOATS))
    kind = draw(st.integers(0, 4))
    inner = draw(real(depth=depth - 1))
    if kind == 0:
        return f"((float)({inner}))"
    return f"({inner} {draw(st.sampled_from('+-*'))} {draw(real(depth=depth - 1))})"


@pytest.mark.skipif(GCC is None, reason="there is no C compiler")
@FEW
@given(parts=st.lists(real(), min_size=40, max_size=40))
def test_floats_are_those_of_a_c_compiler(parts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("c")
    (folder / "a.c").write_text(
        "#include <stdio.h>\nfloat a = 1.7f, b = -0.3f; int i = 7; unsigned u = 4294967295u;\n"
        "int main(void) {\n" + "".join(f'printf("%a\\n", (double)(float)({part}));\n'
                                      for part in parts) + "return 0; }\n")
    subprocess.run([GCC, "-w", "-O0", "-ffp-contract=off", "-o", folder / "a", folder / "a.c"],
                   check=True)
    made = subprocess.run([folder / "a"], capture_output=True, text=True, check=True).stdout
    body = "".join(f"out[{n}] = {part};\n" for n, part in enumerate(parts))
    program = cuda_c.load("__global__ void k(float *out, float a, float b, int i, unsigned u) {\n"
                          f"{body}}}\nvoid h(float *out, float a, float b, int i, unsigned u) {{\n"
                          f"{body}}}\n")
    want = [float.fromhex(word) for word in made.split()]
    for executor in ("simt", "oracle"):
        out = np.zeros(len(parts), np.float32)
        program["k"].launch(1, 1, out, 1.7, -0.3, 7, 4294967295, executor=executor)
        assert out.tolist() == want
    out = np.zeros(len(parts), np.float32)
    program.call("h", out, np.float32(1.7), np.float32(-0.3), 7, 4294967295)
    assert out.tolist() == want


@pytest.mark.skipif(GCC is None, reason="there is no C compiler")
def test_statements_are_those_of_a_c_compiler(tmp_path):
    """Side effects, short circuits, loops of all kinds, by every thread and by gcc."""
    body = """
    int i = t, n = 0, k, trace = 0;
    n += i++ * 2; n += ++i; n -= i-- - --i;
    if (i > 2 && n++ > 3 || (i & 1) && ++n) trace |= 1;
    while (i-- > 0) { if (i == 5) continue; if (i == 1) break; n = n * 3 % 101; }
    do { n += 2; if (n % 7 == 3) continue; n ^= 5; } while (n < 40 && n > -40);
    do n--; while (n > 60);
    for (k = 0; k < 10; k += 3) n += k;
    trace += k;
    for (int a = 10, b = 0; a > b; a--, b++) n += a - b;
    for (int a = 9; a >= 0; a -= 2) { if (a == t) continue; n += a; }
    for (int a = 0; a != 6; ++a) { n -= a; if (n % 11 == 0) break; }
    for (;;) { n += 3; if (n > 20) break; }
    switch (t % 4) { case 0: n += 100; break; case 1: case 2: n -= 100; break; default: n = -n; }
    int *p = &i, m[2][3] = {{1, 2}, {4}}, *q = m[1];
    *p = 3 + (n, t); *q++ += 2; *q = t; n += m[1][0] * 10 + m[1][1] + q[-1] - (int)(q - m[0]);
    unsigned w = t; w -= 3; n += w > 100u; n += (w >> 28) + (t - 3 >> 1);
    short h = 40000 + t; unsigned char y = 250 + t; n += h / 100 + y; trace = trace * 2 + (y < 9);
    n += t > 3 ? t / -2 : -t % 3; n += sizeof(int) + !n; i += n = n + 1;
    result[t] = n * 1000 + trace + i;
    """
    (tmp_path / "a.c").write_text("#include <stdio.h>\nint result[16];\nint main(void) {\n"
                                  f"for (int t = 0; t < 16; t++) {{ {body} }}\n"
                                  'for (int t = 0; t < 16; t++) printf("%d\\n", result[t]); }\n')
    subprocess.run([GCC, "-w", "-o", tmp_path / "a", tmp_path / "a.c"], check=True)
    made = subprocess.run([tmp_path / "a"], capture_output=True, text=True, check=True).stdout
    program = cuda_c.load(
        f"__global__ void k(int *result) {{ int t = threadIdx.x; {body} }}\n"
        f"void h(int *result) {{ for (int t = 0; t < 16; t++) {{ {body} }} }}\n")
    want = list(map(int, made.split()))
    out = np.zeros(16, np.int32)
    program.call("h", out)
    assert out.tolist() == want
    for executor in ("oracle", "simt"):
        out = np.zeros(16, np.int32)
        program["k"].launch(1, 16, out, executor=executor)
        assert out.tolist() == want


NUMBERS = ["a", "b", "c", "t", "1u", "2u", "5u", "7"]


@st.composite
def unsigned(draw, depth=2):
    """An unsigned expression that C always defines, side effects on the way."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(NUMBERS))
    left, right = draw(unsigned(depth=depth - 1)), draw(unsigned(depth=depth - 1))
    op = draw(st.sampled_from(["+", "-", "*", "/", "%", "&", "^", "<", "==", "&&", "||", "?",
                               "<<"]))
    if op == "?":
        return f"({left} ? {right} : {draw(unsigned(depth=depth - 1))})"
    if op in ("/", "%", "<<"):
        return f"({left} {op} (({right} & 7u) + 1u))"
    return f"({left} {op} {right})"


@st.composite
def steps(draw, depth=2, loop=False):
    """A statement; every loop has a counter of its own, so that it ends."""
    kind = draw(st.integers(0, 8 if depth else 2))
    name, value = draw(st.sampled_from("abc")), draw(unsigned())
    if kind == 0:
        if draw(st.booleans()):
            return f"{name} >>= {value} % 9;"
        return f"{name} {draw(st.sampled_from(['=', '+=', '-=', '*=', '^=', '|=']))} {value};"
    if kind == 1:
        return f"{draw(st.sampled_from(['++', '--']))}{name};"
    if kind == 2:
        other = {"a": "b", "b": "c", "c": "a"}[name]
        return f"if ({value} && {name}++ > 3u || --{other} < 9u) {name} ^= {other};"
    body = " ".join(draw(st.lists(steps(depth=depth - 1, loop=True), min_size=1, max_size=2)))
    if kind == 3:
        return f"if ({value}) {{ {body} }} else {name} += 3;"
    i = f"i{draw(st.integers(0, 10**6))}"
    leave = f"if (({draw(unsigned())}) % 5u == 1u) {draw(st.sampled_from(['break', 'continue']))};"
    if kind <= 5:
        head = draw(st.sampled_from([
            f"for (int {i} = 0; {i} < 4; {i}++)", f"for (int {i} = 3; {i} >= 0; --{i})",
            f"for (unsigned {i} = t; {i} < t % 3 + 9u; {i} += 2)",
            f"for (int {i} = 1; {i} < 20; {i} *= 2)"]))
        return f"{head} {{ {leave} {body} {name} += {i}; }}"
    if kind == 6:
        return f"{{ int {i} = t % 4; while ({i}-- > 0) {{ {body} {leave} {name}++; }} }}"
    if kind == 7:
        return f"{{ int {i} = t % 4; do {{ {body} {leave} {name} += 2; }} while ({i}-- > 0); }}"
    return (f"switch ({name} % 3u) {{ case 0: {body} break; case 1: b += 2; break; "
            "default: c ^= 5; }")


@pytest.mark.skipif(GCC is None, reason="there is no C compiler")
@settings(FEW, max_examples=3)
@given(parts=st.lists(steps(), min_size=6, max_size=10))
def test_random_statements_are_those_of_a_c_compiler(parts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("c")
    body = "unsigned a = t, b = 3u * t, c = 11;\n" + "\n".join(
        part for part in parts) + "\nresult[t] = a ^ b * 3u ^ c * 7u;"
    (folder / "a.c").write_text(
        f"#include <stdio.h>\nunsigned result[16];\nvoid f(unsigned t) {{ {body} }}\n"
        'int main(void) { for (unsigned t = 0; t < 16; t++) { f(t); printf("%u\\n", result[t]); } '
        "return 0; }\n")
    subprocess.run([GCC, "-w", "-O0", "-o", folder / "a", folder / "a.c"], check=True)
    made = subprocess.run([folder / "a"], capture_output=True, text=True, check=True, timeout=20)
    want = list(map(int, made.stdout.split()))
    program = cuda_c.load(
        f"__global__ void k(unsigned *result) {{ unsigned t = threadIdx.x;\n{body} }}\n"
        f"void h(unsigned *result, unsigned t) {{ {body} }}\n")
    out = np.zeros(16, np.uint32)
    for t in range(16):
        program.call("h", out, t)
    assert out.tolist() == want
    for executor in ("simt", "oracle"):
        out = np.zeros(16, np.uint32)
        program["k"].launch(1, 16, out, executor=executor)
        assert out.tolist() == want
