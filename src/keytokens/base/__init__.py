"""What every room uses: errors, argument checks, whole files, threads, memory, progress."""
