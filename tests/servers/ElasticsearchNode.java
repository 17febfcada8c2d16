import java.util.List;
import java.util.Map;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.reindex.ReindexPlugin;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.transport.Netty4Plugin;

/** One Elasticsearch node from its jars: settings as key=value arguments, READY when it serves, ends when stdin closes. */
final class ElasticsearchNode extends Node {
    private ElasticsearchNode(Settings settings) {
        super(
                InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "node"),
                List.of(Netty4Plugin.class, ReindexPlugin.class),
                false);
    }

    public static void main(String[] arguments) throws Exception {
        Settings.Builder settings = Settings.builder();
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        Node node = new ElasticsearchNode(settings.build()).start();
        System.out.println("READY");
        while (System.in.read() >= 0) {}
        node.close();
        System.exit(0);
    }
}
