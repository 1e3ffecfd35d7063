//! The `urr` binary.

/// Worth 5 to 10 % of requests per second over the system allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    urr_app::main()
}
