"""The store contract, one file for each kind of promise; `suite` puts them together."""
