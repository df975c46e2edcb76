"""What a release consists of: `make dist` builds it, docs/releasing.md signs and checks it."""
