//! Calls of gRPC on the HTTP/2 connections that `http.rs` serves.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use tonic::Status;
use tonic::body::Body;
use tonic::server::{Grpc, UnaryService};
use wirelab_contract::heron;

use crate::grpc::{Numbers, Received};
use crate::server::Site;

/// Answers a call.
pub(super) async fn answer(site: Arc<Site>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let response = if site.offers_heron() && request.uri().path() == heron::METHOD {
        Grpc::new(Numbers).unary(SquareRoot, request).await
    } else {
        let offered = heron::METHOD;
        Status::unimplemented(format!("this server offers only {offered}, and only with the feature `heron`"))
            .into_http()
    };
    site.work();
    site.count();
    Ok(response)
}

/// The method of the service.
struct SquareRoot;

impl UnaryService<Received> for SquareRoot {
    type Response = f64;
    type Future = Ready<Result<tonic::Response<f64>, Status>>;

    fn call(&mut self, request: tonic::Request<Received>) -> Self::Future {
        let number = request.into_inner().number;
        let root = heron::root(number);
        ready(if root.is_nan() {
            Err(Status::invalid_argument(format!("{number} has no square root")))
        } else {
            Ok(tonic::Response::new(root))
        })
    }
}
