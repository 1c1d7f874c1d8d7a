//! The command line and a daemon behind a URL: the control protocol over an upgraded HTTP connection.

mod refusals;
mod scene;
mod tls;
mod verbs;
