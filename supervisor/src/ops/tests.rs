//! Every verb and every refusal, through the in-memory store and a runtime without processes.
