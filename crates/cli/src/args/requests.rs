//! The options of `load`, `probe` and `ab` for requests of the user.

use std::num::ParseIntError;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use wirelab_model::units::Size;

/// The request, and the expected response.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Request")]
pub struct RequestArgs {
    /// The method; default: `GET`, or `POST` with a body
    #[arg(long)]
    pub method: Option<String>,
    /// Send this header field; repeatable. `{{env.NAME}}` stands for an environment variable, `{{file.PATH}}` for the
    /// text of a file
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// Send this cookie; repeatable
    #[arg(long, short = 'b', value_name = "NAME=VALUE")]
    pub cookie: Vec<String>,
    /// The body: a text, or @FILE. `{{NAME}}` stands for a value of --data. With gRPC, the message as JSON; a list of
    /// messages for a method that takes a stream
    #[arg(long, value_name = "TEXT|@FILE", conflicts_with = "body_size")]
    pub body: Option<String>,
    /// Size of a generated body, for example '32 KiB'
    #[arg(long, value_name = "SIZE")]
    pub body_size: Option<Size>,
    /// With gRPC, the descriptors of the service, as `protoc --include_imports --descriptor_set_out=FILE` writes them;
    /// default: `load` asks the server for them (reflection)
    #[arg(long, value_name = "FILE")]
    pub protoset: Option<PathBuf>,
    /// Values for `{{NAME}}` in URL, header fields and body: CSV with names in the first row, or JSON lines
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// The status that each response must have; default: below 300, or 304
    #[arg(long, value_name = "STATUS")]
    pub expect_status: Option<u16>,
    /// The size that the body of each response must have
    #[arg(long, value_name = "SIZE")]
    pub expect_size: Option<Size>,
    /// The SHA-256 of the body of each response
    #[arg(long, value_name = "DIGEST")]
    pub expect_sha256: Option<String>,
    /// A text in the body of each response
    #[arg(long, value_name = "TEXT")]
    pub expect_text: Option<String>,
    /// A path into the JSON of each response, with its value if one is given; repeatable. With gRPC, the JSON of its
    /// message, or the list of its messages if it is a stream
    #[arg(long, value_name = "PATH[=VALUE]")]
    pub expect_json: Vec<String>,
    /// The number of messages of each response that is a stream (gRPC), or `any`; default of `load`: that of two calls
    /// before it, if both have the same
    #[arg(long, value_name = "NUMBER|any")]
    pub expect_messages: Option<MessagesArg>,
}

/// A value of `--expect-messages`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessagesArg {
    /// Any number.
    Any,
    /// Exactly this number.
    Number(u64),
}

impl FromStr for MessagesArg {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        if text == "any" { Ok(Self::Any) } else { text.parse().map(Self::Number) }
    }
}

/// Several requests, or requests of other tools.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Several requests")]
pub struct MixArgs {
    /// The weights of the URLs or paths, in their order; default: equal
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub weights: Vec<u32>,
    /// Send the requests of this file, which has tables [[request]] as a study (docs/load-and-probe.md)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["weights", "curl", "targets"])]
    pub request_file: Option<PathBuf>,
    /// Send the request of this curl command line
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["weights", "targets"])]
    pub curl: Option<String>,
    /// Send the requests of this file, which has the format of vegeta's targets
    #[arg(long, value_name = "FILE", conflicts_with = "weights")]
    pub targets: Option<PathBuf>,
    /// Send the requests of this HTTP Archive (HAR 1.2) to the server of its first one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["weights", "curl", "targets", "request_file"])]
    pub har: Option<PathBuf>,
}
