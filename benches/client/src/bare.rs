//! The server that both clients call: it finds the id of a request and answers with fixed bytes, the same for everyone.
//!
//! On standard input and output, or with `--listen` over HTTP: a thread for each connection, one read and one write for
//! each request. It knows as much of HTTP as these clients write: HTTP/1.1, and bodies whose length is known.

use bench_client::TEXT;
use bench_kit::bare::{Answers, CAPACITY, serve_lines};
use bench_kit::endpoint::{announce, end_with_input};
use bench_kit::era::Era;
use clap::Parser;
use memchr::memmem;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

#[derive(Parser)]
struct Options {
    /// The revision whose form the answers have.
    #[arg(long)]
    era: Era,
    /// Listens on loopback, and says where.
    #[arg(long)]
    listen: bool,
}

fn main() -> io::Result<()> {
    let options = Options::parse();
    let answers = Answers::new(options.era, TEXT);
    if options.listen {
        return listen(&answers);
    }
    // Past std's own buffers: theirs is flushed at each newline.
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    serve_lines(input, BufWriter::with_capacity(CAPACITY, output), answers, false)
}

fn listen(answers: &Answers) -> io::Result<()> {
    end_with_input();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    announce(listener.local_addr()?)?;
    loop {
        let (stream, _) = listener.accept()?;
        let answers = answers.clone();
        // A client that hangs up in the middle of something is none of the others' business.
        std::thread::spawn(move || serve(stream, answers));
    }
}

fn serve(mut stream: TcpStream, mut answers: Answers) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; CAPACITY];
    let (mut held, mut response) = (0, Vec::new());
    loop {
        let read = stream.read(&mut buffer[held..])?;
        if read == 0 {
            return Ok(());
        }
        held += read;
        while let Some((head, whole)) = request(&buffer[..held]) {
            response.clear();
            respond(&buffer[..head], &buffer[head..whole], &mut answers, &mut response)?;
            stream.write_all(&response)?;
            buffer.copy_within(whole..held, 0);
            held -= whole;
        }
    }
}

/// Where the head of the first request ends, and where the request does, if it is there whole.
fn request(bytes: &[u8]) -> Option<(usize, usize)> {
    const LENGTH: &[u8] = b"content-length: ";
    let head = memmem::find(bytes, b"\r\n\r\n")? + 4;
    let body = memmem::find(&bytes[..head], LENGTH).map_or(0, |place| {
        let digits = bytes[place + LENGTH.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0, |length, digit| 10 * length + usize::from(digit - b'0'))
    });
    (bytes.len() >= head + body).then_some((head, head + body))
}

fn respond(head: &[u8], body: &[u8], answers: &mut Answers, response: &mut Vec<u8>) -> io::Result<()> {
    if !head.starts_with(b"POST ") {
        // No stream of its own, and no session to end.
        return response.write_all(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n");
    }
    // Where it stands is up to the client, so it is looked for everywhere.
    let is_call = memmem::find(body, b"\"tools/call\"").is_some();
    let Some(answer) = (if is_call { answers.to_call(body) } else { answers.to_opening(body) }) else {
        return response.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n");
    };
    write!(response, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", answer.len())?;
    response.write_all(answer)
}

#[cfg(test)]
mod tests {
    use super::request;

    #[test]
    fn a_request_is_taken_when_it_is_there_whole() {
        let wire = b"POST /mcp HTTP/1.1\r\ncontent-length: 2\r\n\r\nabPOST";
        let taken: Vec<_> = (0..wire.len()).filter_map(|end| request(&wire[..end])).collect();
        assert_eq!(taken.first(), Some(&(41, 43)));
    }
}
