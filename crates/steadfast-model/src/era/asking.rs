//! Asking the client, for one revision: roots, sampling, elicitation, input requests.
