//! The function `urr-vwr-lambda`.

use std::{process::ExitCode, sync::Arc};

use lambda_http::{Error, service_fn};
use urr_kernel::{Clock, Ids};
use urr_lambda::{Function, Settings};
use urr_telemetry::{LogFormat, Logging};

/// One request at a time is all that Lambda gives a process.
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

/// Answers events until Lambda has none any more.
async fn serve(function: Arc<Function>) -> Result<(), Error> {
    lambda_http::run(service_fn(move |request| {
        let function = Arc::clone(&function);
        async move { function.answer(request).await }
    }))
    .await
}

#[expect(clippy::disallowed_methods, reason = "a function is told everything by its variables")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Lambda shows what is written here next to the failed start.
fn failed(error: &(dyn std::error::Error + 'static)) -> ExitCode {
    use std::io::Write as _;

    // With nowhere to write there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "urr-vwr-lambda: {}", urr_telemetry::chain(error));
    ExitCode::FAILURE
}
