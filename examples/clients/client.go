// Decide and observe once: go run client.go URL CAMPAIGN, with the token in $TOKEN and the round in round.json.
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

func ask(path string, content map[string]any) map[string]any {
	body, _ := json.Marshal(content)
	request, _ := http.NewRequest("POST", os.Args[1]+path, bytes.NewReader(body))
	request.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + os.Getenv("TOKEN")}}
	answer, err := (&http.Client{Timeout: 10 * time.Second}).Do(request)
	if err != nil || answer.StatusCode != 200 {
		panic(fmt.Sprint(err, answer))
	}
	data, _ := io.ReadAll(answer.Body)
	said := map[string]any{}
	json.Unmarshal(data, &said)
	return said
}

func main() {
	round, _ := os.ReadFile("round.json")
	decided := ask("/decide", map[string]any{"name": os.Args[2]})
	seen := map[string]any{"name": os.Args[2], "at": decided["rounds"], "rounds": json.RawMessage(round)}
	answer, _ := json.Marshal(ask("/observe", seen)) // after a timeout: once more
	fmt.Println(string(answer))
}
