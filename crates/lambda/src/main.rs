//! The Lambda function `urr-vwr-lambda`.

use std::{process::ExitCode, sync::Arc};

use lambda_http::{Error, service_fn};
use urr_kernel::{Clock, Ids};
use urr_lambda::{Function, Settings};
use urr_telemetry::{LogFormat, Logging};

/// Single-threaded: Lambda sends a process one request at a time.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let settings = match Settings::read(variable) {
        Ok(settings) => settings,
        Err(error) => return failed(&error),
    };
    let logging = Logging { format: LogFormat::Json, filter: settings.log_filter.clone(), otlp: None };
    let _lines = match urr_telemetry::init(&logging) {
        Ok(lines) => lines,
        Err(error) => return failed(&error),
    };
    let clock = Clock::system();
    let ids = Ids::random(clock.clone());
    match Function::new(settings, &clock, &ids) {
        Ok(function) => match serve(Arc::new(function)).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&*error),
        },
        Err(error) => failed(&error),
    }
}

/// Handles events until Lambda stops the process.
async fn serve(function: Arc<Function>) -> Result<(), Error> {
    lambda_http::run(service_fn(move |request| {
        let function = Arc::clone(&function);
        async move { function.answer(request).await }
    }))
    .await
}

#[expect(clippy::disallowed_methods, reason = "a Lambda function is configured by its environment variables")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Prints the error to stderr, which Lambda shows next to the failed start.
fn failed(error: &(dyn std::error::Error + 'static)) -> ExitCode {
    use std::io::Write as _;

    // If stderr cannot be written, the error cannot be reported.
    let _ = writeln!(std::io::stderr(), "urr-vwr-lambda: {}", urr_telemetry::chain(error));
    ExitCode::FAILURE
}
