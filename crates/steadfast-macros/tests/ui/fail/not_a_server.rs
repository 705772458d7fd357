use steadfast::{IntoServer, Server};

struct Thing;

fn serve(server: impl IntoServer) -> Server {
    server.into_server()
}

fn main() {
    serve(Thing);
}
