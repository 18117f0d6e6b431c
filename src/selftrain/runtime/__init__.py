"""Services for all other packages: files, compiled kernels, progress reports, parallel work."""
