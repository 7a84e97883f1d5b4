//! kk-lab

fn main() {}
