//! The contract suite: proves that an endpoint keeps the contract.
