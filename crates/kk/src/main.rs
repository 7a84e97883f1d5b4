//! kk

fn main() {}
