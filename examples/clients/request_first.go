// Decide for a request, then observe its round: go run request_first.go URL CAMPAIGN TICKET, with the token in $TOKEN,
// the request in request.json and what is known later in round.json.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func ask(path string, field string, file string) string {
	part, _ := os.ReadFile(file)
	body, _ := json.Marshal(map[string]any{"name": os.Args[2], "ticket": os.Args[3], field: json.RawMessage(part)})
	request, _ := http.NewRequest("POST", os.Args[1]+path, bytes.NewReader(body))
	request.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + os.Getenv("TOKEN")}}
	answer, err := (&http.Client{Timeout: 10 * time.Second}).Do(request)
	if err != nil || answer.StatusCode != 200 {
		panic(fmt.Sprint(err, answer))
	}
	said, _ := io.ReadAll(answer.Body)
	return string(said)
}

func main() {
	fmt.Fprintln(os.Stderr, ask("/decide", "requests", "request.json")) // act on it; days may go by
	fmt.Println(ask("/observe", "rounds", "round.json"))                 // both can be sent again after a timeout
}
