use steadfast::server;

struct Thing;

#[server(parts(admin))]
impl Thing {}

struct Other;

#[server(part = admin, name = "other")]
impl Other {}

fn main() {}
