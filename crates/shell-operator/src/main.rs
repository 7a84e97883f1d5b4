//! shell-operator

fn main() {}
