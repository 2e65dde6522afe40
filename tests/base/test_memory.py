"""What the allocator keeps."""

import os
import platform
import subprocess
import sys
import textwrap

import pytest


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another library of C: its malloc is left as it is")
@pytest.mark.parametrize("started", [{}, {"MALLOC_TRIM_THRESHOLD_": "65536"}], ids=["plain", "as dask starts workers"])
def test_memory_that_is_freed_is_used_again(started):
    """Arrays of two megabytes, seven at a time: as malloc begins, each round is fresh memory."""
    code = """
        import resource, sys, numpy as np
        from keytokens.base.memory import keep_freed_memory
        if "keep" in sys.argv:
            keep_freed_memory()
        faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        some = lambda: [np.ones(1 << 18) for _ in range(7)]
        some()
        before = faults()
        for _ in range(20):
            some()
        print(faults() - before)
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")} | started

    def counted(*how: str) -> int:
        command = [sys.executable, "-c", textwrap.dedent(code), *how]
        return int(subprocess.run(command, capture_output=True, check=True, env=own).stdout)

    as_it_begins, kept = counted(), counted("keep")
    assert as_it_begins > 20_000
    assert kept < 5_000
