"""What every engine runs on: files, compiled kernels, progress, parallel work. One of each."""
