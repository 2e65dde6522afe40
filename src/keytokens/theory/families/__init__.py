"""The claims, one file a family; `common` and `trained` hold what several of them need."""
